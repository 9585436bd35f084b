"""The Ironic API and its extensions: functions of a call, which the table of routes names."""

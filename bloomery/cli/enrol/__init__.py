"""``bloomery enrol``: files of machines become nodes and ports.

records.py reads YAML, JSON and CSV; instackenv.py and metal3.py translate their formats;
machines.py checks a row; service.py compares the rows with the service and writes them.
"""

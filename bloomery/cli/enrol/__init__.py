"""``bloomery enrol``: files of machines become nodes and ports.

records.py reads YAML, JSON and CSV; formats.py translates instackenv.json and BareMetalHosts;
machines.py checks a row; service.py compares the rows with the service and writes them.
"""

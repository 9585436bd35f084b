"""Dell machines with an iDRAC: the redfish driver, and what differs.

``oem`` calls the actions of Dell's own services, and clears the queue of jobs.  Interfaces without
a difference are those of ``redfish``, under the name ``idrac-redfish``.  Source: Dell's public
Redfish schemas DellJobService, DelliDRACCardService, DellLCService and DellAttributes.
"""

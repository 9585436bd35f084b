"""The relay."""

from __future__ import annotations

from bloomery.conf import Conf


def needs_snapshots(conf: Conf) -> bool:
    """Do event rows have to carry whole objects?  Only versioned notifications want that."""
    return conf.default.notification_level is not None and bool(
        conf.oslo_messaging_notifications.driver,
    )

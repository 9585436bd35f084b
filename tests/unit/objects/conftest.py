from __future__ import annotations

from bloomery.cmd import threads

threads.use_threads()  # before anything here imports oslo.messaging

"""Work that an agent in a ramdisk does on the machine itself: so far, inspection."""

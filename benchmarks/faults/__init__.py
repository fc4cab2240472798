"""A fault campaign against the command line: kills, damaged files, crafted files, full disks."""

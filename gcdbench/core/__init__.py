"""What everything else is built on: errors, typed settings, identities, files, the cache. Imports nothing of ours."""

"""What everything stands on: errors, typed settings, identities, files, the cache. Imports nothing of ours."""

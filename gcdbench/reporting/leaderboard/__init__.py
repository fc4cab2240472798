"""A leaderboard from submitted archives: static pages whose every score was computed again here."""

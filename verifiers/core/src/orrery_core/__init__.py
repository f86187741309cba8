"""What every Orrery verifier shares: results, reports, subject isolation, statistics."""

"""The Cloud Storage face: buckets as folders, spoken to in JSON, XML and through TLS."""

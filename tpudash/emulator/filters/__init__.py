"""The filter languages of Cloud Logging and Cloud Monitoring, which share one grammar."""

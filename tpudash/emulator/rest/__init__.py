"""The REST face: JSON over HTTP, transcoded by the HTTP rules that Google's clients carry."""

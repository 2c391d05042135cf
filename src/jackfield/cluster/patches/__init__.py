"""What changes an object in part: JSON patches, merge patches, strategic ones."""

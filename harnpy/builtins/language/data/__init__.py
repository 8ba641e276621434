"""Values: collections, numbers, schemas, results, errors, assertions."""

"""Results: what they share, and how they are saved and written as tables and graphs."""

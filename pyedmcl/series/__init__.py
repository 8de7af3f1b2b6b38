"""Whatever a user holds, as validated, named and scaled series, with their times, groups and fields."""

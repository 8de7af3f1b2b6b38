"""What several methods share: arguments, rows, states, measures of skill, and tests of what was found."""

"""What is measured, at which price, and what it promises."""

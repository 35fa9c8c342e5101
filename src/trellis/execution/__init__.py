"""How a function is mapped over families of areas."""

"""How plans, ledgers and forecasts look on a screen."""

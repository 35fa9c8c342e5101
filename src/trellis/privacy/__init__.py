"""Random bits, exact noise, accounting and the ledger: the part an auditor reads first."""

"""Selection from a domain: top-k and k-hitting set, on a public domain or one found by the WGM."""

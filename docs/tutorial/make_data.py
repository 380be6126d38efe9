"""Purchases of made-up customers: a Zipf law of products, baskets of very different sizes."""

import csv
import random

PRODUCTS = [f"p{rank:04d}" for rank in range(1, 3001)]
POPULARITY = [rank**-1.3 for rank in range(1, 3001)]


def write(path, *, customers, seed):
    rng = random.Random(seed)
    with open(path, "w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(["customer", "product"])
        for customer in range(customers):
            size = min(150, int(4 * rng.paretovariate(1.3)))
            for product in sorted(set(rng.choices(PRODUCTS, POPULARITY, k=size))):
                rows.writerow([f"c{customer}", product])


write("panel.csv", customers=3_000, seed=1)
write("customers.csv", customers=20_000, seed=2)

"""The statement behind every tag, as data: what a reader of a table asks first.

Formulas are plain text: `^(...)` and `_x` are raised and lowered where a page is set
(`experiments.report.formulas`), and read as they stand elsewhere.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Entry:
    """One statement.

    Attributes:
        tag: Name without brackets, such as "U2".
        group: Heading under which it is listed.
        name: A few words.
        statement: What is true, in one or two sentences.
        formula: The same with constants; empty where the statement says it all.
        source: Where it is proved.
        aliases: Other spellings in tables and notes.
    """

    tag: str
    group: str
    name: str
    statement: str
    formula: str = ""
    source: str = ""
    aliases: tuple[str, ...] = ()

    @property
    def anchor(self) -> str:
        """Name of the place on a page, safe in an address."""
        plain = self.tag.replace("∞", "inf").replace("*", "-star")
        return "tag-" + re.sub(r"[^A-Za-z0-9-]", "-", plain)


def find(tag: str) -> Entry | None:
    """The entry of a tag, with or without brackets; None if there is none.

    Example:
        >>> find("[U2]").name, find("U-inf").tag, find("Lemma C.5 (printed)").tag, find("[X]")
        ('instance bound', 'U∞', 'C.5', None)
    """
    return _by_spelling().get(tag.removesuffix(" (printed)").removeprefix("[").removesuffix("]"))


@functools.cache
def _by_spelling() -> dict[str, Entry]:
    return {spelling: entry for entry in GLOSSARY for spelling in (entry.tag, *entry.aliases)}


SYMBOLS: tuple[tuple[str, str], ...] = (
    ("W = {W_i}", "the data set: one set of items per user, i = 1..n"),
    ("n, M, N", "users; distinct items; user-item pairs, N = Σ |W_i|"),
    ("N(x), a(x)", "number of users who hold item x; its mass, a(x) = N(x)/N"),
    ("L, Δ0, q*", "largest set; contribution bound (most items kept of a user); q* = min(L, Δ0)"),
    ("p*", "least keep probability of an item, p* = q*/L"),
    ("ε, δ", "privacy parameters; neighbours differ by one user"),
    ("β", "allowed failure probability of a bound"),
    ("σ, T", "standard deviation of the noise; threshold for release"),
    ("H(x)", "weight of x: the sum of min(|W_i|, Δ0)^(-1/2) over the users who keep it"),
    ("S", "the release: all x with H(x) > 0 and H(x) + σZ_x > T, Z_x independent standard normal"),
    ("MM", "missing mass: the sum of a(x) over all items that are not released"),
    ("MM_∞", "largest mass of an item that is not released"),
    ("MM^k", "top-k missing mass: what k released items miss of the mass of the k largest"),
    ("m(x)", "probability that x is missed"),
    ("τ", "frequency up to which items may be missed"),
    ("λ", "scale of the Gumbel noise of peeling"),
    ("π(k)", "largest probability of releasing an item with k holders that privacy allows [L0]"),
    ("Φ", "distribution function of the standard normal law"),
)

WORDS: tuple[tuple[str, str], ...] = (
    ("cell", "one claim on one data set at one setting: a row of the table of verdicts"),
    ("proved", "decided in favour by exact arithmetic; nothing is left to chance"),
    ("confirmed", "decided in favour by simulated trials, at the stated level"),
    ("refuted", "decided against; for an erratum of the paper this is what is expected"),
    ("undecided", "the evidence reaches the level in neither direction; more trials may decide"),
    ("vacuous", "the bound says nothing: at least 1 from above, at most 0 from below"),
    (
        "slack",
        "bound ÷ observed for an upper bound, observed ÷ bound for a lower one: 1× is tight, 10× "
        "is true and of little use",
    ),
    ("oracle gap", "E[MM] of the mechanism over [L2]: the most that a better one could win here"),
    ("level", "largest probability of any wrong verdict among the cells of a claim (Holm)"),
)

_PRIVACY, _ZIPF = "Privacy and calibration", "Zipf certificates"
_EXACT, _UPPER = "Exact marginals and certificates", "Upper bounds"
_LOWER, _TOP_K, _HITTING = "Lower bounds", "Top-k selection", "k-hitting set"
_LEMMAS, _VERDICTS = "Lemmas", "Verdicts"

GLOSSARY: tuple[Entry, ...] = (
    Entry(
        "P1", _PRIVACY, "the paper's calibration",
        "With half of δ for the noise and half for the threshold the WGM is (ε, δ)-DP.",
        "δ_G(ε; 1) ≤ δ/2,  T ≥ max_t t^(-1/2) + σ Φ⁻¹((1 − δ/2)^(1/t)), 1 ≤ t ≤ Δ0",
        "paper, Theorem 3.2",
    ),
    Entry(
        "P2", _PRIVACY, "exact accountant",
        "The smallest δ for which the WGM with these σ, T and Δ0 is (ε, δ)-DP, in closed form.",
        "δ = max( δ_G(ε; 1), 1 − Φ((T − 1)/σ), 1 − Φ((T − Δ0^(-1/2))/σ)^(Δ0) )",
        "derived here; δ_G by Balle and Wang 2018",
    ),
    Entry(
        "P3", _PRIVACY, "full-δ calibration",
        "By [P2] the two conditions of [P1] do not add up: with all of δ in both the WGM is still "
        "(ε, δ)-DP, and σ and T are both the smallest possible.",
        "as [P1] with δ in place of δ/2", "derived here, by [P2]",
    ),
    Entry(
        "Z1", _ZIPF, "largest set",
        "On (C, s)-Zipfian data, N_((r)) ≤ C N/r^s at every rank r, neither the number of items "
        "nor a set is large.",
        "L ≤ M ≤ (C N)^(1/s)", "paper, Lemma 3.1",
    ),
    Entry(
        "Z2", _ZIPF, "tail",
        "The mass of all items with at most τ holders. The paper's proof has 1/(s−1) in place of "
        "s/(s−1) (erratum 1).",
        "tail(τ) ≤ min(1, s/(s−1) · C^(1/s) · (τ/N)^((s−1)/s))", "derived here; paper, Lemma C.2",
    ),
    Entry(
        "E1", _EXACT, "miss probability",
        "The number K(x) of larger users who keep x is a sum of independent Bernoulli variables, "
        "so the probability of missing x is a finite sum. h0 is the weight from the users with at "
        "most Δ0 items.",
        "m(x) = Σ_k P(K = k) Φ((T − h0 − k/√Δ0)/σ), the term of weight 0 being P(K = k)",
        "derived here",
    ),
    Entry(
        "E2", _EXACT, "exact mean",
        "The expectation of the missing mass, for every Δ0, without a single trial.",
        "E[MM] = Σ_x a(x) m(x)", "derived here, from [E1]",
    ),
    Entry(
        "E3", _EXACT, "exact law",
        "Where no user is clipped (Δ0 ≥ L) items are missed independently, so the whole law of "
        "the missing mass is known.",
        "N·MM = Σ_x N(x) · Bernoulli(m(x))", "derived here",
    ),
    Entry(
        "E4", _EXACT, "negative association",
        "For every Δ0 the miss indicators are negatively associated: the missing mass is below "
        "the independent sum X* in convex order.",
        "E exp(θ·MM) ≤ Π_x (1 − m(x) + m(x) e^(θ a(x)))", "Joag-Dev and Proschan 1983; Shao 2000",
    ),
    Entry(
        "E5", _EXACT, "Chernoff certificate",
        "Holds with probability at least 1 − β; needs no simulation.",
        "MM ≤ inf_θ (Σ_x ln(1 − m + m e^(θ a)) + ln(1/β))/θ", "derived here, from [E4]",
    ),
    Entry(
        "E6", _EXACT, "hinge certificate",
        "Holds with probability at least 1 − β, sharper than [E5]; X* is the independent sum of "
        "[E4], its law computed as in [E3].",
        "MM ≤ inf_u (u + E(X* − u)_+ /β)", "derived here, from [E4]",
    ),
    Entry(
        "E7", _EXACT, "bracket of the largest missing mass",
        "Encloses the quantile of MM_∞ for every Δ0.",
        "1 − Π_(a>v) (1 − m) ≤ P(MM_∞ > v) ≤ Σ_(a>v) m", "derived here, from [E4]",
    ),
    Entry(
        "C.2", _LEMMAS, "survival",
        "With probability at least 1 − b every item with so many holders survives subsampling, "
        "which alone loses no more than the tail [Z2] below.",
        "N(x) ≥ ln(M/b)/p*", "paper, Lemma C.2", ("Lemma C.2",),
    ),
    Entry(
        "C.3", _LEMMAS, "frequent items stay frequent",
        "With probability at least 1 − b every item with so many holders keeps at least half of "
        "the copies expected, p* N(x)/2.",
        "N(x) ≥ (8/p*) ln(M/b)", "paper, Lemma C.3", ("Lemma C.3",),
    ),
    Entry(
        "C.4", _LEMMAS, "weight of the missed",
        "With probability at least 1 − b every item that was kept and missed has at most this "
        "weight. The paper's T + σ√(2 ln(2N/b)) is larger.",
        "H(x) ≤ T + σ Φ⁻¹(1 − b/M)", "paper, Lemma C.4, sharpened",
        ("Lemma C.4",),
    ),
    Entry(
        "C.5", _LEMMAS, "largest mass lost",
        "With probability at least 1 − β no item of more mass is lost by subsampling alone.",
        "MM_∞(W, ∪ W̃_i) ≤ ln(N/β)/(p* N)", "paper, Lemma C.5", ("Lemma C.5",),
    ),
    Entry(
        "A.1", _LEMMAS, "largest of n Gaussians",
        "With probability at least 1 − b, for n independent normal variables of deviation σ.",
        "max |Z_i| ≤ σ √(2 ln(2n/b))", "paper, Lemma A.1", ("Lemma A.1",),
    ),
    Entry(
        "A.2", _LEMMAS, "largest of n Gumbels",
        "With probability at least 1 − b, for n independent Gumbel variables of scale λ.",
        "max |G_i| ≤ λ ln(2n/b)", "paper, Lemma A.2", ("Lemma A.2",),
    ),
    Entry(
        "U0", _UPPER, "the paper's shape",
        "Theorem 3.3 with constant 1 and without logarithms: not a bound, but its slopes are "
        "those of the theorem, −(s−1)/s in ln N.",
        "C^(1/s)/(s−1) · (L (T + σ)/(N √q*))^((s−1)/s)", "paper, Theorem 3.3 and Corollary 3.4",
    ),
    Entry(
        "U1", _UPPER, "missed frequency τ",
        "With probability at least 1 − β every missed item has at most τ holders.",
        "Δ0 < L: τ = max((8L/q*) ln(2M/β), (2L/√q*)(T + σ Φ⁻¹(1 − β/(2M))));  "
        "Δ0 ≥ L: τ = √L (T + σ Φ⁻¹(1 − β/M))",
        "paper, Lemmas C.3 and C.4 joined",
    ),
    Entry(
        "U1*", _UPPER, "missed frequency, sharper",
        "The same as [U1] from exact binomial sums: m̄(n) bounds the miss probability of any item "
        "with n holders.",
        "τ* = (least n with min(M, N/n) m̄(n) ≤ β) − 1,  "
        "m̄(n) = (1 − p*)^n + Σ_(k≥1) Bin(n, p*)(k) Φ((T − k/√q*)/σ)",
        "derived here",
    ),
    Entry(
        "U∞", _UPPER, "largest missing mass",
        "With probability at least 1 − β, for any data.",
        "MM_∞ ≤ τ/N, τ of [U1]", "paper, Theorem 3.6, with constants", ("U-inf",),
    ),
    Entry(
        "U∞p", _UPPER, "largest missing mass, as printed",
        "Theorem 3.6 with the constants of the paper's own proof; valid and larger than [U∞].",
        "MM_∞ ≤ 8/(p* N) · max(ln(3N/β), √q* (T + σ √(2 ln(6N/β))))", "paper, Theorem 3.6",
        ("U-inf-p",),
    ),
    Entry(
        "U2", _UPPER, "instance bound",
        "With probability at least 1 − β no more is missed than the mass of all items with at "
        "most τ holders.",
        "MM ≤ tail(τ), τ of [U1]", "paper, proof of Theorem 3.3",
    ),
    Entry(
        "U2*", _UPPER, "instance bound, sharper", "[U2] with the smaller τ* of [U1*].",
        "MM ≤ tail(τ*)", "derived here",
    ),
    Entry(
        "U3", _UPPER, "Zipf bound",
        "Theorem 3.3 with explicit constants, for the best certificate (C, s) of the data; holds "
        "with probability at least 1 − β.",
        "MM ≤ s/(s−1) · C^(1/s) · (τ/N)^((s−1)/s)", "paper, Theorem 3.3, corrected",
    ),
    Entry(
        "U3p", _UPPER, "Zipf bound, as printed",
        "Theorem 3.3 with the constants of the paper's own proof. Not valid for large s (erratum "
        "1).",
        "MM ≤ C^(1/s)/(s−1) · (9X/(p* N))^((s−1)/s),  "
        "X = max(√q* (T + σ √(2 ln(6N/β))), ln(3(CN)^(1/s)/β))",
        "paper, Theorem 3.3",
    ),
    Entry(
        "L0", _LOWER, "optimal selection probability",
        "No sound (ε, δ)-DP algorithm releases an item with k holders with a larger probability.",
        "π(0) = 0,  π(k+1) = min(e^ε π(k) + δ, 1 − e^(-ε)(1 − π(k) − δ), 1)",
        "Desfontaines et al. 2022",
    ),
    Entry(
        "L1", _LOWER, "rare items are missed",
        "Every sound (ε, δ)-DP algorithm misses an item with at most k* holders at least every "
        "second time.",
        "k* = (1/ε) ln(1 + (e^ε − 1)/(2δ))", "paper, Lemma D.1",
    ),
    Entry(
        "L2", _LOWER, "instance optimum",
        "Every sound (ε, δ)-DP algorithm misses at least this much on average on these data, and "
        "one that knows the data attains it. What is measured below it is not private.",
        "E[MM] ≥ Σ_x a(x) (1 − π(N(x)))", "paper, Theorem 3.5, for every data set",
    ),
    Entry(
        "L3", _LOWER, "hard Zipfian data",
        "On the data W* of Theorem 3.5 (one item per user, frequencies ⌊CN/r^s⌋) the lower bound "
        "has the shape of the upper one.",
        "E[MM] ≥ ½ tail(k*)", "paper, Theorem 3.5",
    ),
    Entry(
        "L4", _LOWER, "top-k lower bound",
        "On k items of frequency ⌊k*⌋, one per user, every sound (ε, δ)-DP algorithm misses at "
        "least half; on other data at least the value of a knapsack.",
        "E[MM^k] ≥ (1/N)(Σ_(i≤k) N_((i)) − max{Σ N_((i)) y_i : 0 ≤ y_i ≤ π(N_((i))), Σ y_i ≤ k})",
        "paper, Corollary 4.4, for every data set",
    ),
    Entry(
        "L5", _LOWER, "hitting-set bound",
        "No sound (ε, δ)-DP algorithm hits more users on average; deg_i is the number of users "
        "who share an item with i. The paper prints the corollary with ≥ (erratum 5).",
        "E[Hits] ≤ Σ_i min(1, π(deg_i), Σ_(x∈W_i) π(N(x)))", "paper, Corollary 4.6",
    ),
    Entry(
        "K1", _TOP_K, "noise of peeling",
        "k rounds of peeling with Gumbel noise of scale λ are (ε, δ)-DP.",
        "λ = 1/ε',  ε' = max(ε/k, √((8 ln(1/δ) + 8ε)/k) − √(8 ln(1/δ)/k))",
        "paper, Lemmas 4.1 and B.1", ("Lemma B.1", "Lemma 4.1"),
    ),
    Entry(
        "K2", _TOP_K, "loss of peeling",
        "With probability at least 1 − b peeling over the domain D loses at most this much of the "
        "k largest counts.",
        "Σ_(top k of D) N − Σ_S N ≤ k λ ln(k |D|/b)", "paper, Lemma 4.2 and Corollary C.6",
        ("Lemma 4.2", "Corollary C.6"),
    ),
    Entry(
        "K3", _TOP_K, "top-k bound",
        "With probability at least 1 − β, half of the budget for each stage.",
        "MM^k ≤ (k/N)(τ + λ ln(2kM/β)), τ of [U1] at β/2", "paper, Theorem 4.3",
    ),
    Entry(
        "K1h", _HITTING, "noise of user peeling",
        "User peeling is (ε, δ)-DP with a noise that does not grow with k: a user is hit once, "
        "and only until then do the rounds depend on it.",
        "λ = 1/ε',  ε' ≤ ε,  (1 − e^(-ε')) exp(−(ε + ε')/(e^(ε') − 1)) ≤ δ",
        "derived here; idea of Gupta et al. 2010",
    ),
    Entry(
        "H1", _HITTING, "hitting-set bound",
        "With probability at least 1 − β user peeling after the WGM hits so many users; Opt is "
        "the most that k items can hit.",
        "Hits ≥ (1 − (1 − 1/k)^k)(Opt − kτ − kλ ln(2kM/β))_+", "paper, Theorem 4.5",
    ),
    Entry(
        "C.7", _HITTING, "user peeling on a known domain",
        "With probability at least 1 − β, against the best choice from the domain D.",
        "Hits ≥ (1 − 1/e) Opt(W, D, k) − 2kλ ln(2|D|k/β)", "paper, Lemma C.7", ("Lemma C.7",),
    ),
    Entry(
        "C.8", _HITTING, "what the domain loses",
        "Where the domain D holds every item with at least τ holders.",
        "Opt(W, D, k) ≥ Opt − kτ", "paper, Lemma C.8", ("Lemma C.8",),
    ),
    Entry(
        "V1", _VERDICTS, "one look",
        "Confirmed where the exact binomial (Clopper-Pearson) upper limit of the failure rate is "
        "at most β, refuted where the lower limit exceeds it, else undecided.",
        "", "Clopper and Pearson 1934; Holm 1979",
    ),
    Entry(
        "V2", _VERDICTS, "any number of looks",
        "Trials may be added until a verdict is reached: the evidence is an e-process for R "
        "trials with K exceedances, and the mirror image refutes.",
        "½ (1 − β)^(-R) · 1[K = 0] + ½ (½)^K ((1 − β/2)/(1 − β))^(R − K)", "Ville 1939",
    ),
)  # fmt: skip

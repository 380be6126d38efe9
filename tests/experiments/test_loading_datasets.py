"""The 13 data sets of the collection give exactly the figures published with them."""

import pytest

from experiments.loading import PRESETS, load

# users, items, pairs, largest set, median set, users of the top item, items of frequency 1
FIGURES = {
    "steam": (12_393, 5_155, 128_804, 1_068, 2, 4_841, 1_170),
    "imdb": (50_000, 121_582, 7_000_694, 987, 115, 49_561, 54_113),
    "reddit-posts": (27_095, 63_978, 1_599_019, 1_947, 40, 20_259, 33_719),
    "ml-100k": (943, 1_682, 100_000, 737, 65, 583, 141),
    "ml-1m": (6_040, 3_706, 1_000_209, 2_314, 96, 3_428, 114),
    "ml-latest-small": (610, 9_724, 100_836, 2_698, 70.5, 329, 3_446),
    "amazon-magazine-subscriptions": (72_098, 2_428, 88_318, 55, 1, 1_716, 413),
    "amazon-prime-pantry": (13_101, 4_898, 124_803, 51, 7, 550, 0),
    "amazon-video-games": (31_013, 23_715, 287_107, 860, 6, 847, 3_376),
    "book-crossing": (2_946, 17_384, 272_678, 2_088, 44, 718, 149),
    "anime": (5_000, 7_390, 520_609, 1_993, 56, 2_638, 941),
    "retail": (88_162, 16_470, 908_576, 76, 8, 50_675, 2_224),
    "stackexchange-beer": (782, 15_621, 112_676, 2_846, 65.5, 675, 8_120),
}
# Rows without author; texts without a word; pairs that occur again.
DROPPED = {
    "steam": (0, 0, 707),
    "reddit-posts": (0, 1, 0),
    "amazon-magazine-subscriptions": (0, 0, 1_371),
    "amazon-prime-pantry": (0, 0, 153),
}


def test_every_preset_has_figures():
    assert FIGURES.keys() == PRESETS.keys()


@pytest.mark.parametrize("name", FIGURES)
def test_figures(data_collection, name):
    folder = data_collection / name
    if not folder.is_dir():
        pytest.skip(f"the data collection has no {name}")
    data = load(folder, preset=name)
    found = (
        data.num_users,
        data.num_items,
        data.num_pairs,
        data.max_set_size,
        data.median_set_size,
        data.top_count,
        int((data.frequencies == 1).sum()),
    )
    assert found == FIGURES[name]
    if name in DROPPED:
        dropped = (data.missing_dropped, data.empty_users_dropped, data.duplicates_removed)
        assert dropped == DROPPED[name]


def test_layouts_are_found_without_preset(data_collection):
    """The same files by column names and numbers only: separator and header are found."""
    told = {
        "ml-100k": {"user": 0, "item": 1},
        "ml-latest-small": {"user": "userId", "item": "movieId"},
        "amazon-magazine-subscriptions": {"user": "1", "item": "0"},
        "amazon-video-games": {},
        "book-crossing": {},
        "anime": {"user": "User_ID", "item": "Anime_ID"},
        "amazon-prime-pantry": {"format": "adjacency"},
        "retail": {"format": "baskets"},
        "stackexchange-beer": {"format": "posts-xml"},
    }
    for name, options in told.items():
        if (data_collection / name).is_dir():
            data = load(data_collection / name, **options)
            assert (data.num_users, data.num_items, data.num_pairs) == FIGURES[name][:3], name

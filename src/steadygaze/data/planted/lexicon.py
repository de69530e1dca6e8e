"""The words that decide a planted review: what is talked about, what is said of it, and what turns that round.

Rows are synonym sets; two facing rows of opinions are antonyms, word for word.  Adjectives and things of a set, and of
the set that faces it, begin alike (all with a vowel or all with a consonant), so that swapping one for another never
needs another article.  None of these words is among the neutral words of `words` or in the fixed text of
`frames`, except the negators, which also stand in other clauses, where they turn nothing round.

The neutral words of the planted reviews: people, places, food, weather …  None praises or blames anything.
"""

from collections.abc import Iterable


def _listed(text: str) -> tuple[str, ...]:
    return tuple(" ".join(words.split()) for words in text.split(","))


_BREWERS = _listed("""Copper, Northern, Harbour, Granite, Old Mill, Riverside, Three Oaks, Iron, Saltmarsh, Amberley,
    Highfield, Canal, Lantern, Millstone, Orchard, Valley, Chapel, Quarry, Lighthouse, Meadow, Foundry, Crossroads,
    Bluebell, Thornbury""")
_EMBLEMS = _listed("""Heron, Anchor, Badger, Lion, Swan, Plough, Raven, Wheel, Barrel, Fox, Bridge, Kettle, Otter,
    Hammer, Stag, Compass, Owl, Windmill""")

NEUTRAL: dict[str, tuple[str, ...]] = {
    "the": ("the", "the", "its"),
    "is": ("is", "was"),
    "was": ("is", "was", "was", "seemed", "proved", "turned out", "came across as"),
    "truly": _listed("""truly, really, simply, absolutely, thoroughly, genuinely, decidedly, quite, utterly,
        distinctly"""),
    "particularly": _listed("particularly, especially, truly, really, remotely, exactly"),
    "aside": _listed("""to my mind, in my view, for me, in my book, as I see it, once again, on reflection, to everyone
        here, in retrospect, all told, by my notes, this time"""),
    "us": _listed("""me, us, everyone, everybody, the whole table, my guests, most of us, all of us, the two of us, our
        group"""),
    "with_us": _listed("""here, at the table, in our group, at the bar, in the room, in the family, at the tasting, I
        know, in the kitchen, around me"""),
    "person": _listed("""brother, sister, uncle, aunt, cousin, nephew, niece, father, mother, grandfather, grandmother,
        neighbour, flatmate, colleague, boss, landlord, landlady, roommate, wife, husband, partner, son, daughter,
        godfather, godmother, dentist, doctor, tutor, professor, accountant, babysitter, stepfather, stepmother,
        grandson, fiancé, fiancée, teammate, classmate, stepbrother, stepsister, penfriend, lodger, mentor, apprentice,
        friend, father-in-law, mother-in-law, brother-in-law, sister-in-law, bandmate, housemate, coach"""),
    "job": _listed("""carpenter, baker, butcher, teacher, nurse, farmer, fisherman, sailor, gardener, librarian,
        electrician, painter, journalist, architect, mechanic, tailor, waiter, waitress, barman, barmaid, clerk,
        cashier, translator, pilot, surveyor, engineer, potter, printer, roofer, shepherd, weaver, welder, cobbler,
        chemist, geologist, historian, violinist, drummer, photographer, blacksmith, bricklayer, glazier, joiner,
        miller, miner, optician, porter, ranger, vet, zookeeper"""),
    "place": _listed("""pub, tavern, inn, beer garden, taproom, brewpub, bistro, canteen, hotel, hostel, campsite,
        station, airport, ferry, museum, theatre, cinema, stadium, market, fairground, boathouse, clubhouse, church
        hall, town hall, library, bowling alley, golf club, cricket ground, tennis court, swimming pool, skating rink,
        art school, post office, bus stop, fire station, lighthouse, windmill, watermill, castle, monastery, abbey,
        barn, farm, vineyard, bakery, workshop, festival, tasting, wedding, conference, reunion, picnic"""),
    "room": _listed("""kitchen, cellar, attic, garage, garden, conservatory, hallway, lounge, study, dining room,
        nursery, sitting room, boiler room, courtyard, shed, greenhouse, basement, spare room, backyard, loft,
        bathroom, pantry, laundry, stairwell, parlour"""),
    "storage": _listed("""fridge, cellar, pantry, cupboard, cooler, ice bucket, crate, larder, cool box, barrel, cask,
        rack, stream, snow, car boot, rucksack, wardrobe, drawer, freezer, chest"""),
    "shop": _listed("""supermarket, corner shop, bottle shop, off-licence, department store, duty-free shop, brewery
        shop, kiosk, petrol station, delicatessen, greengrocer, farm shop, wholesaler, flea market, gift shop, village
        shop, wine merchant, tobacconist, stationer, hardware store, bookshop, chandlery"""),
    "town": _listed("""Bamberg, Ghent, Leuven, Bruges, Antwerp, Prague, Pilsen, Munich, Cologne, Dublin, Cork, Galway,
        Edinburgh, Glasgow, Leeds, York, Sheffield, Bristol, Norwich, Durham, Exeter, Lewes, Burton, Portland, Seattle,
        Denver, Boston, Chicago, Austin, Milwaukee, Toronto, Montreal, Halifax, Oslo, Bergen, Stockholm, Malmö,
        Copenhagen, Aarhus, Helsinki, Tallinn, Riga, Vilnius, Warsaw, Kraków, Vienna, Salzburg, Zürich, Basel, Lyon,
        Lille, Turin, Bologna, Porto, Seville, Melbourne, Hobart, Wellington, Sapporo, Osaka"""),
    "brewery": tuple(f"{brewer} {emblem}" for brewer in _BREWERS for emblem in _EMBLEMS),
    "style": _listed("""stout, porter, lager, pilsner, IPA, pale ale, brown ale, bitter, mild, saison, witbier, wheat
        beer, dunkel, bock, doppelbock, helles, kölsch, altbier, gose, lambic, gueuze, tripel, dubbel, quadrupel,
        barley wine, red ale, amber ale, rye ale, cream ale, golden ale, blonde, schwarzbier, rauchbier, märzen,
        kellerbier, grisette, old ale, scotch ale, export"""),
    "glass": _listed("""tulip, snifter, goblet, chalice, tankard, stein, mug, pint glass, flute, tumbler, beaker,
        shaker, jam jar, wine glass, teku, thistle, stange, weizen glass, paper cup, plastic cup, jug, horn, pewter
        pot, coffee mug, schooner"""),
    "size": _listed("""small, large, half-litre, two-litre, tiny, tall, squat, slender, brown, green, clear, swing-top,
        corked, capped, waxed, unlabelled, numbered, twelve-ounce, seven-ounce, standard"""),
    "food": _listed("""bread, cheese, olives, pretzels, crackers, almonds, walnuts, peanuts, pistachios, sausages, ham,
        bacon, salami, roast beef, lamb chops, chicken wings, duck, turkey, goose, venison, rabbit, salmon, trout,
        herring, mackerel, tuna, cod, prawns, mussels, oysters, crab, squid, rice, noodles, dumplings, lentils,
        chickpeas, cabbage, carrots, beetroot, spinach, mushrooms, aubergines, courgettes, tomatoes, peppers,
        cucumbers, potatoes, chips, crisps, pickles, omelettes, pancakes, waffles, goulash, lasagne, risotto, paella,
        curry, chilli, tacos, burritos, falafel, hummus, couscous, stew, broth, pie, pizza, burgers, sandwiches,
        popcorn, shortbread, gingerbread, cheesecake, apple strudel, brownies, sorbet, custard"""),
    "meal": _listed("""breakfast, brunch, lunch, tea, supper, dinner, work, school, training, rehearsal, church,
        midnight, sunset"""),
    "flavour": _listed("""grapefruit, lemon, orange peel, tangerine, lime, mango, papaya, pineapple, passion fruit,
        peach, apricot, plum, cherry, raspberry, strawberry, blackcurrant, gooseberry, fig, raisin, date, banana, pear,
        apple, melon, coconut, vanilla, cinnamon, nutmeg, clove, cardamom, coriander, ginger, star anise, liquorice,
        pepper, juniper, thyme, sage, mint, basil, rosemary, lavender, elderflower, rose, jasmine, honeysuckle, pine,
        cedar, oak, hay, straw, moss, leather, tobacco, smoke, toffee, caramel, butterscotch, treacle, honey, molasses,
        chocolate, cocoa, coffee, espresso, hazelnut, marzipan, biscuit, toast, rye, yeast, dough, wax, resin, camphor,
        tea leaves, tar, chalk, slate"""),
    "shade_word": _listed("""amber, golden, copper, mahogany, chestnut, ruby, garnet, russet, bronze, ochre, straw
        yellow, lemon yellow, ivory, beige, tan, khaki, brown, black, ebony, charcoal, grey, pewter, orange, peach,
        pink, burgundy, crimson, auburn, maple, walnut, sepia, cream, white, rust, brick red, sandy, cinnamon, tawny,
        inky, opaque, hazy, translucent"""),
    "touch": _listed("""dry, round, soft, prickly, light, medium, full, warm, dense, slick, oily, chewy, syrupy,
        powdery, brisk, grainy, tingly, airy, heavy, firm, supple, tannic, milky, still, cool, coarse, sticky, springy,
        loose"""),
    "month": _listed("""January, February, March, April, May, June, July, August, September, October, November,
        December, spring, summer, autumn, winter"""),
    "weekday": _listed("Monday, Tuesday, Wednesday, Thursday, Friday, Saturday, Sunday"),
    "days": _listed("days, weeks, months, evenings, weekends, afternoons, nights, mornings"),
    "period": ("hours", "days", "weeks", "months"),
    "weather": _listed("""rainy, sunny, foggy, windy, cloudy, snowy, frosty, humid, muggy, chilly, mild, overcast,
        stormy, drizzly, misty, breezy, sultry, icy, thundery, blustery"""),
    "number": _listed("""two, three, four, five, six, seven, eight, nine, ten, eleven, twelve, thirteen, fourteen,
        fifteen, sixteen, seventeen, eighteen, nineteen, twenty"""),
    "few": _listed("two, three, four, five, six, seven, eight, nine, ten, eleven"),
    "ordinal": _listed("""first, second, third, fourth, fifth, sixth, seventh, eighth, ninth, tenth, eleventh,
        twelfth"""),
    "coins": _listed("""euros, pounds, dollars, francs, kroner, crowns, złoty, shillings, pesos, rupees"""),
    "hop": _listed("""Saaz, Hallertau, Fuggle, Cascade, Citra, Mosaic, Simcoe, Amarillo, Centennial, Chinook, Galaxy,
        Tettnang, Spalt, Perle, Magnum, Galena, Nugget, Willamette, Motueka, Strisselspalt, Bramling, Challenger"""),
    "malt": _listed("""Munich, Vienna, crystal, roasted, smoked, peated, wheat, oat, spelt, caramel, melanoidin,
        aromatic, black, biscuit, pilsner, pale, acidulated, floor-malted"""),
    "animal": _listed("""fox, badger, hare, heron, otter, owl, raven, swan, stag, boar, bear, wolf, lynx, beaver,
        squirrel, hedgehog, pigeon, rooster, hen, goat, donkey, mule, pony, cat, kitten, spaniel, terrier, greyhound,
        parrot, tortoise, frog, toad, salamander, dragon, mermaid, elephant, camel, zebra, giraffe, walrus"""),
    "object": _listed("""lantern, anchor, barrel, wheel, plough, hammer, bicycle, tractor, canoe, rowing boat, steam
        engine, kettle, ladder, umbrella, violin, trumpet, accordion, drum, harp, clock, compass, telescope, key,
        padlock, candle, mirror, basket, bucket, shovel, rake, axe, saw, anvil, bell, kite, globe, map, feather,
        horseshoe, teapot, typewriter, suitcase, postcard, stamp, newspaper, notebook, pencil, calendar, photograph,
        ribbon"""),
    "pet": _listed("""cat, kitten, dog, puppy, spaniel, terrier, greyhound, tortoise, parrot, ferret, rabbit,
        dachshund, beagle"""),
    "luggage": _listed("""suitcase, rucksack, umbrella, newspaper, notebook, basket, violin case, toolbox, shopping
        bag, walking stick, camera, lantern, bucket, atlas, thermos, briefcase, laptop, fishing rod, tennis racket,
        parcel"""),
    "furniture": _listed("""table, bench, sofa, armchair, piano, fireplace, stove, bookcase, sideboard, counter, desk,
        workbench, rug, campfire, barbecue, hammock, stool, trunk, dresser, wood burner"""),
    "game": _listed("""chess, draughts, dominoes, darts, poker, bridge, whist, rummy, backgammon, scrabble, charades,
        billiards, snooker, table tennis, skittles, croquet, cribbage, canasta, mahjong, patience"""),
    "music": _listed("""jazz, blues, opera, folk songs, a string quartet, brass bands, cumbia, fado, tango, polka,
        reggae, ska, disco, techno, country, gospel, madrigals, a piano sonata, sea shanties, the football results, the
        shipping forecast, the news, a radio play, an organ recital, a cricket commentary"""),
    "topic": _listed("""football, rugby, politics, gardening, astronomy, chemistry, geology, railways, canals,
        beekeeping, sailing, cycling, knitting, pottery, carpentry, genealogy, grammar, philosophy, the weather, house
        prices, holidays, mountaineering, fishing, birdwatching, cartography, archaeology, volcanoes, submarines,
        bridges, lighthouses, mushrooms, tax returns, bus timetables, crosswords, photography, electric cars, local
        history, the harvest, fermentation, ballet"""),
    "landscape": _listed("""river, canal, coast, lake, harbour, ridge, beach, motorway, railway line, valley, moor,
        forest, estuary, cliffs, dunes, promenade, towpath, vineyards, orchards, border, bay, reservoir, marshes,
        hills"""),
    "garment": _listed("""raincoat, cardigan, waistcoat, scarf, jumper, hoodie, dressing gown, tweed jacket, kilt,
        apron, straw hat, beanie, flat cap, anorak, poncho, tuxedo, tracksuit, denim shirt, bow tie, fleece"""),
}
"""Slot of a frame -> the words that may stand there.  A word listed twice stands there twice as often."""


ASPECTS = ("appearance", "aroma", "palate")

NOUNS: dict[str, tuple[tuple[str, ...], ...]] = {
    "appearance": (
        ("appearance", "look"),
        ("colour", "hue", "tint", "shade"),
        ("head", "foam", "froth"),
    ),
    "aroma": (
        ("aroma", "smell", "nose", "scent"),
        ("bouquet", "fragrance", "perfume"),
        ("odour", "whiff"),
    ),
    "palate": (
        ("palate", "mouthfeel", "feel"),
        ("body", "texture", "consistency"),
        ("carbonation", "fizz", "sparkle"),
    ),
}

_ADJECTIVES = (
    (
        "wonderful marvellous superb fantastic terrific splendid magnificent brilliant glorious",
        "dreadful terrible horrible horrid ghastly dismal lousy miserable wretched",
    ),
    ("lovely pleasant delightful charming pleasing", "nasty repulsive disgusting vile displeasing"),
    ("fascinating captivating compelling gripping", "dull boring tedious dreary"),
    ("satisfying rewarding gratifying first-rate", "disappointing frustrating mediocre second-rate"),
    ("excellent outstanding exquisite exceptional amazing", "awful atrocious abysmal appalling inferior"),
    ("enjoyable appealing inviting attractive", "unpleasant unappealing uninviting unattractive"),
)
_PAST = (("impressed delighted pleased charmed thrilled", "disappointed bored annoyed repelled dismayed"),)
_BASE = (("impress delight please charm thrill", "disappoint bore annoy repel dismay"),)
_THINGS = (("joy treat triumph success gem", "mess letdown disaster failure flop"),)

_OWN = {
    "appearance": (
        "gorgeous handsome beautiful picturesque radiant stunning striking photogenic",
        "hideous murky drab grubby scruffy muddy dingy shabby",
    ),
    "aroma": (
        "heavenly fresh tempting mouth-watering divine clean seductive lively",
        "stale musty foul rank putrid mouldy sweaty sickly",
    ),
    "palate": (
        "smooth silky velvety luscious refreshing luxurious seamless mellow",
        "watery harsh cloying thin scratchy gritty lifeless slimy",
    ),
}
_SHARED = {"adjective": _ADJECTIVES, "past": _PAST, "base": _BASE, "thing": _THINGS}
_FACING = [pair for pairs in (*_SHARED.values(), _OWN.values()) for pair in pairs]


def _side(pairs: Iterable[tuple[str, str]], positive: bool) -> tuple[str, ...]:
    return tuple(word for pair in pairs for word in pair[0 if positive else 1].split())


OPINIONS = {slot: {praise: _side(pairs, praise) for praise in (True, False)} for slot, pairs in _SHARED.items()}
"""Slot of a frame -> is it praise? -> the words that may be said there of any aspect."""
OWN_ADJECTIVES = {aspect: {praise: _side([pair], praise) for praise in (True, False)} for aspect, pair in _OWN.items()}
"""Aspect -> is it praise? -> the adjectives that are said of it alone."""

NEGATORS: dict[str, tuple[str, ...]] = {
    "not": (
        *("not", "hardly", "scarcely", "never", "far from"),
        *("anything but", "by no means", "nowhere near", "in no way"),
    ),
    "far_from": ("far from", "anything but", "by no means", "hardly"),
    "hardly": ("hardly", "scarcely", "barely", "never"),
    "would_not": ("not", "never", "hardly", "scarcely"),
    "does_not": ("not",),
    "isn't": ("isn't", "wasn't"),
    "didn't": ("didn't", "couldn't", "wouldn't"),
    "nobody": ("nobody", "no one"),
    "failed": ("failed", "fails"),
    "doubts": ("doubts", "doubted", "denies", "denied"),
    "untrue": ("untrue", "wrong", "misleading", "inaccurate"),
}
"""Slot of a frame -> the phrases that may stand there; each turns the opinion of its clause into its opposite."""

POLARITY = {word: praise for praise in (True, False) for word in _side(_FACING, praise)}
ASPECT_OF = {noun: aspect for aspect, rows in NOUNS.items() for row in rows for noun in row}
ANTONYMS = dict(
    both
    for pair in _FACING
    for words, others in (pair, pair[::-1])
    for both in zip(words.split(), others.split(), strict=True)
)


def _synonyms() -> dict[str, tuple[str, ...]]:
    rows = [row for rows in NOUNS.values() for row in rows]
    rows += [tuple(side.split()) for pair in _FACING for side in pair]
    return {word: tuple(other for other in row if other != word) for row in rows for word in row}


SYNONYMS = _synonyms()
"""Opinion word or aspect noun -> words that may replace it without changing any label."""

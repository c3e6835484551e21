"""A publisher with a name has a quota, and keys that it may publish to, as a guard against mistakes.

feature: hub/publishers
prints:
    key is "sensors.cellar.damp", but must be one that "roof" may publish: sensors.roof.>
    all 5 tokens of the publisher's quota are in use
    5 published, 2 refused
"""

import paceline
from paceline import Rate

with paceline.Pool() as pool, paceline.Hub(pool) as hub:
    # One message in an hour, and five at once.
    roof = hub.publisher("roof", quota=Rate(1, per=3600, burst=5), allow=["sensors.roof.>"])
    try:
        roof.publish("sensors.cellar.damp", b"1")
    except paceline.InvalidError as error:
        print(error)
    try:
        for _ in range(6):
            roof.publish("sensors.roof.wind", b"1")
    except paceline.Full as full:
        print(full)
    stats = roof.stats()
    print(stats.published, "published,", stats.refused, "refused")

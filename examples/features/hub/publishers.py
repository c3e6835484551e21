"""Publishers with a name, permitted keys and a quota: a guard against mistakes.

feature: hub/publishers
"""

import paceline
from paceline import Rate

with paceline.Pool() as pool:
    hub = paceline.Hub(pool)
    # One message in an hour, and five at once.
    roof = hub.publisher("roof", quota=Rate(1, per=3600, burst=5), allow=["sensors.roof.>"])
    try:
        roof.publish("sensors.cellar.damp", b"1")
        raise AssertionError("it may not publish there")
    except paceline.InvalidError:
        pass
    accepted = 0
    try:
        while accepted < 100:
            roof.publish("sensors.roof.wind", b"1")
            accepted += 1
    except paceline.Full:
        pass
    stats = roof.stats()
    assert accepted == stats.published == 5 and stats.refused >= 1
    hub.close()

"""Reads metrics from standard input with the official client's parser for the format that the argument names
("prometheus" or "openmetrics"), and prints what it has understood as JSON: the type of each family, and for each
sample its name, labels, value and help."""

import json
import sys

from prometheus_client import parser
from prometheus_client.openmetrics import parser as strict

parsers = {"prometheus": parser, "openmetrics": strict}
families = list(parsers[sys.argv[1]].text_string_to_metric_families(sys.stdin.read()))
samples = [
    [sample.name, sample.labels, repr(float(sample.value)), family.documentation]
    for family in families
    for sample in family.samples
]
json.dump({"types": {family.name: family.type for family in families}, "samples": samples}, sys.stdout)

"""Reads Prometheus text from standard input with both parsers of the official client, and prints what
it has understood as JSON: for each sample its name, labels and value."""

import json
import sys

from prometheus_client import parser
from prometheus_client.openmetrics import parser as strict

text = sys.stdin.read()


def understood(families):
    samples = []
    for family in families:
        for sample in family.samples:
            samples.append([sample.name, sample.labels, repr(float(sample.value)), family.documentation])
    return samples


classic = understood(parser.text_string_to_metric_families(text))
exact = understood(strict.text_string_to_metric_families(text))
json.dump({"classic": classic, "openmetrics": exact}, sys.stdout)

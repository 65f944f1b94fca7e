#!/usr/bin/env python3
"""Counts a ctest --output-junit file: the skipped tests with their reasons, then `N passed, N failed`."""
import sys
import xml.etree.ElementTree

passed, failed = 0, 0
for case in xml.etree.ElementTree.parse(sys.argv[1]).getroot().iter("testcase"):
    if case.get("status") == "run":
        passed += 1
    elif case.get("status") == "fail":
        failed += 1
    else:
        output = (case.findtext("system-out") or "").strip().splitlines()
        print(f"not run: {case.get('name')}: {output[-1] if output else case.get('status')}")
print(f"{passed} passed, {failed} failed")

"""``bloomery export ironic``: hand machines to an Ironic, which drives them from then on."""

"""How a client of some microversion sees what operations return: fields, masks, links, pages."""

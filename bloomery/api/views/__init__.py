"""Views of operations' values by microversion: fields, masks, links, pages."""

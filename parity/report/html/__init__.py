"""Reports as one HTML file each: the frame of a page, the report of a run, a comparison of two."""

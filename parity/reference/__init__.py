"""What a program should compute: the ideal (`f64`) and the declared (`strict`) result."""

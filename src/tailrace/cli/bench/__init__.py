"""`tailrace bench`: a load tool."""

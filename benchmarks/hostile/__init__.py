"""A campaign of hostile input against every reader of hlotool."""

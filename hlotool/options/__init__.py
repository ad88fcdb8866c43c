"""What commands and functions of the API take: each option is declared once, and all is made of that."""

"""Options, each declared once: commands, functions and configurations are made of the declarations."""

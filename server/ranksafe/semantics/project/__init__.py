"""What the files of a project say to each other: who defines a name, who trains whose models, who depends on whom."""

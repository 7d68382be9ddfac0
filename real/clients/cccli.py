"""LinkedIn's command line client of Cruise Control, as its users call it."""

from cruisecontrolclient.client.cccli import main

main()

"""What a process shows of itself: figures for Prometheus, and whether it lives and is of use.

`catalogue` has every figure that controllers show (those of a fabric manager are its own), `controllers` shows them;
`probes` answers over HTTP. Knows what is counted and by which labels. Must not know why anything is done.
"""

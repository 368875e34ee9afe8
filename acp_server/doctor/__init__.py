"""What `wholeturn doctor` looks at. Every check reads; none writes, creates or locks anything."""

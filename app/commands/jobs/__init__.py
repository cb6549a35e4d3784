"""Commands that submit jobs and show them: training, tuning, smaller copies, previews."""

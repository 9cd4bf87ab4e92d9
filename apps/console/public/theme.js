// Runs before the first paint, so that a chosen theme never flashes in the other one. A file of its own: the page's policy
// allows no script in the page itself.
try {
  const theme = localStorage.getItem('theme');
  if (theme === 'light' || theme === 'dark') document.documentElement.dataset.theme = theme;
} catch {
  // Storage may be forbidden: the system's theme is used.
}

// Runs before the first paint. A separate file, because the content security policy forbids inline scripts.
// `data-path` chooses the text of index.html that is shown until the console's script has arrived.
document.documentElement.dataset.path = location.pathname;
try {
  const theme = localStorage.getItem('theme');
  if (theme === 'light' || theme === 'dark') document.documentElement.dataset.theme = theme;
} catch {
  // Storage may be forbidden; the system theme applies.
}

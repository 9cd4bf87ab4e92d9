/** Writes property lists. Imported on demand, because only macOS needs the XML library. */
export { build } from 'plist';

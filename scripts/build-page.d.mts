export function buildPage(): Promise<Map<'index.html' | 'icon.svg' | 'page.js' | 'page.css', Buffer>>

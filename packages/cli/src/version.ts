/** The one place that knows the product version; a test compares it with package.json and CHANGELOG.md. */
export const VERSION = '0.1.0'

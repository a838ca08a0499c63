// Prints the page that the site's search shows first for each query: node search_site.cjs SITE QUERY ...
const fs = require("fs");
const path = require("path");
const vm = require("vm");

const [site, ...queries] = process.argv.slice(2);
const page = vm.createContext({
  document: { addEventListener() {}, getElementById: () => ({ lastChild: null }) },
  localStorage: { setItem() {} },
  SPHINX_HIGHLIGHT_ENABLED: false,
  _ready() {},
  _: (text) => text,
});
page.window = page;
// In the order of search.html.
for (const script of ["_static/searchtools.js", "_static/language_data.js", "searchindex.js"])
  vm.runInContext(fs.readFileSync(path.join(site, script), "utf8"), page);
for (const query of queries) {
  page.query = query;
  // The last result is shown first.
  const results = vm.runInContext("Search._performSearch(...Search._parseQuery(query))", page);
  console.log(results.at(-1)[0]);
}

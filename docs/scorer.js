// How the site's search ranks what it finds. Sphinx puts a name of the reference (16) above a page
// with the word in a heading (15). Who searches for a word first needs the page on it, and what is
// of MindSpore comes after what every reader can use.
const OF_MINDSPORE = /\/(aicpu|ascend_operators|extension|graph_operators|op_info|porting|tbe)$/;
Scorer.score = ([page, , , , score]) => {
  if (page === "reference/api/operators") return score + 1;
  return /^(guides|tutorial)\//.test(page) && !OF_MINDSPORE.test(page) ? score + 10 : score;
};

// Code blocks may scroll: the keyboard must reach them on every device.  The theme does so only where a pointer can hover.
document.querySelectorAll("pre > code").forEach((code) => {
  const focusable = () => code.hasAttribute("tabindex") || code.setAttribute("tabindex", "0");
  new MutationObserver(focusable).observe(code, { attributeFilter: ["tabindex"] });
  focusable();
});
